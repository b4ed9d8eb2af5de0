package model

// The features of a linear map have the unit of the vectors, and so has the ridge:
// its default is DefaultGamma in the mean squared distance from the mean, whatever
// that is. Those of the other maps have no unit.
func defaultLinearGamma(sigma float64) float64 { return digits(DefaultGamma * sigma / 2) }

// gammaIsDefault reports whether the gamma of modality t is neither given nor
// chosen.
func (tr *trainer) gammaIsDefault(t int) bool {
	if tr.from.open == nil || !tr.from.open[t].gamma {
		return false
	}
	choice := tr.report.Choices[tr.reader.modalities[t].Name]
	return choice == nil || choice.Unfit != ""
}

func (tr *trainer) setGamma(modality string, gamma float64) {
	tr.opt.Gamma[modality] = gamma
	if choice := tr.report.Choices[modality]; choice != nil {
		choice.Gamma = gamma
	}
}
