"""Every resource of the hierarchy with every fault, and what must become of all the others."""
