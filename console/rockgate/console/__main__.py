"""`python -m rockgate.console` is `rockgate console`."""

from rockgate.console.command import app

if __name__ == "__main__":
    app(prog_name="rockgate console")
