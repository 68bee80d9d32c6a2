module github.com/ctrlkit/ctrlkit

go 1.26.0

require (
	github.com/gofrs/flock v0.13.1
	golang.org/x/sys v0.49.0
	golang.org/x/term v0.47.0
)
