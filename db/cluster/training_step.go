package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/replica"
)

// trainingStep carries out a step of a training or an update on a replica: a survey, a sum or a model. It
// returns the bytes of the object order.Into.
func (n *Node) trainingStep(r *replica.Replica, o order) ([]byte, error) {
	switch o.Do {
	case "survey":
		s, err := r.Survey(n.ctx, o.Session, o.Collection, o.From)
		if err != nil {
			return nil, err
		}
		return s.Marshal()
	case "sum":
		asked, err := objects{n.js, n.cluster}.fetch(n.ctx, o.Sum)
		if err != nil {
			return nil, err
		}
		var sum replica.SumOrder
		if err := json.Unmarshal(asked, &sum); err != nil {
			return nil, fmt.Errorf("%w: %w", db.ErrInvalid, err)
		}
		return r.Sum(n.ctx, o.Session, sum)
	default: // model
		ctx, cancel := context.WithTimeout(n.ctx, answerFor)
		defer cancel()
		return r.Model(ctx, o.Collection, o.Space, o.From)
	}
}
