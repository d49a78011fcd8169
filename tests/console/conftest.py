"""A browser, for the tests that need one: found or unpacked once, and skipped with its reason."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from tests.browser import ADVICE, ARGUMENTS, Browser, NoBrowser, find_browser
from tests.gates import is_ci

WAIT_MS = 60_000


@cache
def _found() -> Browser | str:
    try:
        return find_browser(os.environ)
    except NoBrowser as error:
        return str(error)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser. It must not outlive its module: its loop would be in the way of others."""
    found = _found()
    if isinstance(found, str):
        if is_ci(os.environ):
            pytest.fail(f"no browser, and CI=true allows no skip: {ADVICE}. {found}", pytrace=False)
        pytest.skip(f"no browser: {ADVICE}. {found}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=str(found.program), args=list(ARGUMENTS), env=found.environment()
        )
        yield browser
        browser.close()


@pytest.fixture
def visitor(chromium: Any) -> Iterator[Any]:
    """A page that fails the test if a script in it fails."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    context.close()
    assert errors == []
