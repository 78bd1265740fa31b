package protocol

import (
	"bytes"
	"strconv"
)

const (
	// maxInteger is the largest integer that every JSON implementation
	// keeps exactly (2^53-1); sequence numbers end there.
	maxInteger = 1<<53 - 1
	// safeDigits is how many digits a number without an exponent may have
	// and certainly be below float64's largest value, 1.8e308.
	safeDigits = 308
	// safeMantissa is the same for a number with an exponent of at most
	// safeExponentDigits digits: 200+99 is below 308.
	safeMantissa       = 200
	safeExponentDigits = 2
	// smallExponentDigits is how many digits of an exponent are counted in
	// an int64; longer ones are added as text.
	smallExponentDigits = 17
)

// overflows reports whether a number is too large for a float64. The common
// short forms are decided by their length.
func overflows(num []byte) bool {
	e := bytes.IndexAny(num, "eE")
	switch {
	case e < 0:
		if len(num) <= safeDigits {
			return false
		}
	case e <= safeMantissa:
		if num[e+1] == '-' || len(bytes.TrimPrefix(num[e+1:], []byte{'+'})) <= safeExponentDigits {
			return false
		}
	}
	_, err := strconv.ParseFloat(string(num), 64)
	return err != nil
}

// integer is the value of a JSON number that is an integer from 0 to
// maxInteger, in whatever form it is written: 1, 1.0 and 10e-1 are 1.
func integer(num []byte) (int64, bool) {
	const plainDigits = 15 // any number of so many digits is below maxInteger
	if len(num) <= plainDigits && allDigits(num) {
		return digitsValue(num), true
	}
	canon := appendNumber(nil, num)
	digits, exp, ok := bytes.Cut(canon, []byte{'e'})
	zeros := 0
	if ok {
		const maxDigits = 16 // maxInteger has 16
		if exp[0] == '-' || len(exp) > 2 || len(digits)+int(digitsValue(exp)) > maxDigits {
			return 0, false
		}
		zeros = int(digitsValue(exp))
	}
	if digits[0] == '-' || len(digits) > 16 {
		return 0, false
	}
	v := digitsValue(digits)
	for range zeros {
		v *= 10
	}
	return v, v <= maxInteger
}

func allDigits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}

func digitsValue(b []byte) (v int64) {
	for _, c := range b {
		v = v*10 + int64(c-'0')
	}
	return v
}

// appendNumber appends the one canonical form of a JSON number: its significant
// digits as an integer without trailing zeros, then "e" and the exponent where
// that is not 0. It is exact, of linear cost, and never longer than the number
// by more than a few bytes, however large the exponent is. Zero has no sign.
func appendNumber(dst, num []byte) []byte {
	mark := len(dst)
	if num[0] == '-' {
		dst = append(dst, '-')
		num = num[1:]
	}
	mantissa, exponent := num, []byte(nil)
	if e := bytes.IndexAny(num, "eE"); e >= 0 {
		mantissa, exponent = num[:e], num[e+1:]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte{'.'})
	if whole = bytes.TrimLeft(whole, "0"); len(whole) == 0 {
		trimmed := bytes.TrimLeft(fraction, "0")
		dst = append(dst, trimmed...)
	} else {
		dst = append(append(dst, whole...), fraction...)
	}
	digits := len(dst)
	for digits > mark && dst[digits-1] == '0' {
		digits--
	}
	if digits == mark || dst[digits-1] == '-' {
		return append(dst[:mark], '0')
	}
	shift := int64(len(dst)-digits) - int64(len(fraction))
	return appendExponent(dst[:digits], exponent, shift)
}

// appendExponent appends "e" and exponent+shift, or nothing where that is 0.
func appendExponent(dst, exponent []byte, shift int64) []byte {
	negative := false
	if len(exponent) > 0 && (exponent[0] == '-' || exponent[0] == '+') {
		negative = exponent[0] == '-'
		exponent = exponent[1:]
	}
	exponent = bytes.TrimLeft(exponent, "0")
	if len(exponent) <= smallExponentDigits {
		v := digitsValue(exponent)
		if negative {
			v = -v
		}
		if v += shift; v == 0 {
			return dst
		}
		return strconv.AppendInt(append(dst, 'e'), v, 10)
	}
	dst = append(dst, 'e')
	if negative {
		dst = append(dst, '-')
		shift = -shift
	}
	return appendSum(dst, exponent, shift)
}

// appendSum appends digits+delta in decimal; digits is much larger than delta.
func appendSum(dst, digits []byte, delta int64) []byte {
	mark := len(dst)
	dst = append(append(dst, '0'), digits...)
	for i := len(dst) - 1; i >= mark && delta != 0; i-- {
		v := int64(dst[i]-'0') + delta
		delta = v / 10
		if v %= 10; v < 0 {
			v += 10
			delta--
		}
		dst[i] = byte(v) + '0'
	}
	sum := bytes.TrimLeft(dst[mark:], "0")
	return append(dst[:mark], sum...)
}
