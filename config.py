"""What pyinfra reads before the inventory: an inventory that it cannot read gets an answer here."""

from rackwright.inventory import refuse_other_formats

refuse_other_formats()
