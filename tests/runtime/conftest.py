"""The server of S3, for tests of stores."""

from tests.s3_server import s3, s3_process

__all__ = ["s3", "s3_process"]
