package fake

import "strconv"

// maxSuggestLen bounds the names that are compared, in bytes: a longer one is
// no typing error, and the comparison takes the product of both lengths.
const maxSuggestLen = 64

// suggest ends an error about an unknown name with the nearest known one, or
// is empty where none is near.
func suggest(name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return "; did you mean " + strconv.Quote(near) + "?"
	}
	return ""
}

// Nearest returns the name that was probably meant: the one with the fewest
// changed characters, at most a third of its length, or "" where none is so near.
func Nearest(name string, known []string) string {
	if len(name) > maxSuggestLen {
		return ""
	}
	best, bestDistance := "", maxSuggestLen
	for _, k := range known {
		if d := distance(name, k); d < bestDistance && d <= max(1, len(k)/3) {
			best, bestDistance = k, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours (in bytes) between two names.
func distance(a, b string) int {
	before := make([]int, len(b)+1)
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
