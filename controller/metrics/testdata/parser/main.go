// Parser reads a page of metrics on stdin with the parser of the Prometheus
// project, and prints what it understood as JSON, for the tests of package
// metrics. It is a module of its own, so that its dependencies are none of the
// project's.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func main() {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(os.Stdin)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(families)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "parser:", err)
		os.Exit(1)
	}
}
