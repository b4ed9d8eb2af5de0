package shell

// guarded runs a function of the dialogue itself, such as completion. A panic in it
// must not end the shell and the open database; guarded reports it.
func (s *Shell) guarded(what string, f func()) {
	defer func() {
		if mistake := recover(); mistake != nil {
			s.out.Warnf("warning: %s failed: %v", what, mistake)
		}
	}()
	f()
}
