"""From the user's graph to the contracted problem in arrays that the methods solve."""
