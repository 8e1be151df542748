"""Why a large epsilon may still defend: practical membership privacy."""
