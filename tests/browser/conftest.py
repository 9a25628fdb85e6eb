"""A real Chromium, and a service in a process of its own. `make test-browser` installs both."""

import os
import shutil

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from browser_page import Page
from services import service, small_tagger


@pytest.fixture(scope="session")
def model_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tags.ldsm"
    small_tagger().save(path)
    return path


@pytest.fixture(scope="session")
def served(model_file):
    with service(model_file, "--port", 0) as process:
        yield process


@pytest.fixture(scope="session")
def driver():
    driver = chromium()
    try:
        yield driver
    finally:
        driver.quit()


def chromium(*arguments: str) -> webdriver.Chrome:
    """A browser without a window."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    usual = ("--headless=new", "--disable-gpu", "--no-first-run", "--window-size=1280,900")
    for argument in (*usual, *arguments):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium refuses to run as root with it
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_script_timeout(120)
    return driver


@pytest.fixture
def page(driver, served):
    page = Page(driver, served.address)
    page.size(1280, 900)
    page.colours("light")
    yield page.open()
    assert page.errors() == []
