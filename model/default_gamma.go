package model

// defaultLinearGamma returns the default ridge of a linear map. Its features have the
// unit of the vectors, and so has the ridge: it is DefaultGamma times the mean squared
// distance from the mean. Features of other maps have no unit.
func defaultLinearGamma(sigma float64) float64 { return digits(DefaultGamma * sigma / 2) }

// gammaIsDefault reports whether gamma of modality t is neither given nor chosen.
func (tr *trainer) gammaIsDefault(t int) bool {
	if tr.from.open == nil || !tr.from.open[t].gamma {
		return false
	}
	choice := tr.report.Choices[tr.reader.modalities[t].Name]
	return choice == nil || choice.Unfit != ""
}

// setGamma sets a gamma that follows from the training items, in the options and in what
// the report says was chosen.
func (tr *trainer) setGamma(modality string, gamma float64) {
	tr.opt.Gamma[modality] = gamma
	if choice := tr.report.Choices[modality]; choice != nil {
		choice.Gamma = gamma
	}
}
