"""What comes with the program, as a package: so it is found, installed or not."""
