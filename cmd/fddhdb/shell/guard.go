package shell

// guarded runs what a dialogue does of its own accord. A mistake in it must not end the
// shell and what the user has open.
func (s *Shell) guarded(what string, f func()) {
	defer func() {
		if mistake := recover(); mistake != nil {
			s.out.Warnf("warning: %s failed: %v", what, mistake)
		}
	}()
	f()
}
