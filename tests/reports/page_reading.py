"""A page taken apart, for the tests of all pages."""

from html.parser import HTMLParser

VOID = {"meta", "br", "img", "link", "hr", "input"}


class Page(HTMLParser):
    """The elements of a page, its text, and whether every element is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag):
        """Attributes of every element of a kind."""
        return [attrs for name, attrs in self.elements if name == tag]

    def text(self, tag):
        """Texts directly in elements of a kind."""
        return [data for name, data in self.texts if name == tag]

    @property
    def whole(self):
        """All text, one space between the words."""
        return " ".join(" ".join(data for tag, data in self.texts if tag not in ("style", "script")).split())


def said(*parts: object) -> str:
    """Sentences, in lists or alone, as one text without marks and with plain spaces."""
    texts = [said(*part) if isinstance(part, list | tuple) else str(part) for part in parts if part]
    return " ".join(texts).replace("**", "").replace("\u202f", " ").replace("\u00a0", " ")
