"""Many viewers of one live list, in a real browser, whose connections and servers are killed."""
