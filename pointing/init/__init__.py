"""`pointing init`: looks at the user's data, and writes settings that fit them, the machine and the time there is."""
