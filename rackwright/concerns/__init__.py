"""The concerns of a host: one package for each subject that Rackwright manages there."""
