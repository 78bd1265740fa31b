package protocol

import (
	"time"
)

// parseTime reads an RFC 3339 time completely: lower-case t and z, any number of
// decimals (those beyond nanoseconds are dropped), and a leap second, which is
// 23:59:60 in UTC and is read as the second after it. Package time alone takes
// a comma, an hour without its zero and offsets of 99 hours, and no leap second.
func parseTime(s string) (time.Time, bool) {
	const dateTime = len("2006-01-02T15:04:05")
	if len(s) <= dateTime || !punctuated(s) {
		return time.Time{}, false
	}
	year, ok := digitsOf(s[0:4], 0, 9999)
	month, ok1 := digitsOf(s[5:7], 1, 12)
	day, ok2 := digitsOf(s[8:10], 1, 31)
	hour, ok3 := digitsOf(s[11:13], 0, 23)
	minute, ok4 := digitsOf(s[14:16], 0, 59)
	second, ok5 := digitsOf(s[17:19], 0, 60)
	nanos, rest, ok6 := fractionOf(s[dateTime:])
	zone, ok7 := zoneOf(rest)
	if !(ok && ok1 && ok2 && ok3 && ok4 && ok5 && ok6 && ok7) {
		return time.Time{}, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, 0, 0, zone)
	if t.Day() != day || t.Month() != time.Month(month) {
		return time.Time{}, false // no such day in the month
	}
	const leap = 60
	if u := t.UTC(); second == leap && (u.Hour() != 23 || u.Minute() != 59) {
		return time.Time{}, false
	}
	t = t.Add(time.Duration(second)*time.Second + time.Duration(nanos))
	return t, t.Year() <= 9999
}

// punctuated reports whether the marks between the digits are in their places.
func punctuated(s string) bool {
	return s[4] == '-' && s[7] == '-' && (s[10] == 'T' || s[10] == 't') && s[13] == ':' && s[16] == ':'
}

// digitsOf reads a number that consists of digits only and is in [low, high].
func digitsOf(s string, low, high int) (int, bool) {
	v := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		v = v*10 + int(s[i]-'0')
	}
	return v, v >= low && v <= high
}

// fractionOf reads an optional fraction of a second, in nanoseconds.
func fractionOf(s string) (nanos int, rest string, ok bool) {
	if s == "" || s[0] != '.' {
		return 0, s, true
	}
	i, unit := 1, int(time.Second)
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		unit /= 10
		nanos += int(s[i]-'0') * unit
	}
	return nanos, s[i:], i > 1
}

// zoneOf reads Z or an offset.
func zoneOf(s string) (*time.Location, bool) {
	if s == "Z" || s == "z" {
		return time.UTC, true
	}
	if len(s) != len("+00:00") || s[3] != ':' || (s[0] != '+' && s[0] != '-') {
		return nil, false
	}
	hour, ok := digitsOf(s[1:3], 0, 23)
	minute, ok1 := digitsOf(s[4:6], 0, 59)
	if !ok || !ok1 {
		return nil, false
	}
	offset := (hour*60 + minute) * 60
	if s[0] == '-' {
		offset = -offset
	}
	return time.FixedZone("", offset), true
}

// isStamp reports whether s is a valid emittedAt: [TimeLayout] exactly.
func isStamp(s string) bool {
	t, err := time.Parse(TimeLayout, s)
	return err == nil && t.Format(TimeLayout) == s
}
