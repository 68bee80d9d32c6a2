package run

// plane is the control plane of this run. A nil plane is one that somebody else takes care of.
type plane struct {
	kubeconfig string
	broken     <-chan struct{}
	why        func() error
	stopAll    func() error
}

// done returns a channel that is closed when the control plane has broken; nil when there is none.
func (p *plane) done() <-chan struct{} {
	if p == nil {
		return nil
	}
	return p.broken
}

func (p *plane) err() error { return p.why() }

func (p *plane) stop() error { return p.stopAll() }
