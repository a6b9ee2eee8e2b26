"""``python -m seams_lab`` is ``seams-lab``."""

from seams_lab.cli import main

if __name__ == "__main__":
    main()
