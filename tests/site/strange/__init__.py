"""An app whose hooks do what hooks should not, as their clients tell them."""
