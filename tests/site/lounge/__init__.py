"""An app of the test site with private channels, whose pages get their tokens from views."""
