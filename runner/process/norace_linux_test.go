//go:build !race

package process

const raceBuild = false
