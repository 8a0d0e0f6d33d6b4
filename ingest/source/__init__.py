"""Where the files of dumps lie: in folders of this machine, in archives, at URLs."""
