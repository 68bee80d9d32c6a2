package command

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"ctrlkit":                  main,
		"kubectl-ctrlkit":          main,
		"kubectl_complete-ctrlkit": main,
	})
}
