import { TemperError } from '../lib/errors.ts';
import type { Approvals } from '../tools/approvals.ts';

/** A pod has no way yet to request an approval, so every request is refused. */
export const unavailableApprovals: Approvals = {
  request: ({ tool }) => Promise.reject(unavailable(tool)),
  waitForDecision: (id) => Promise.reject(unavailable(id)),
  decisionOrPark: (id) => Promise.reject(unavailable(id)),
  use: (id) => Promise.reject(unavailable(id)),
};

function unavailable(subject: string): TemperError {
  return new TemperError(
    'TEMPER_APPROVAL_DENIED',
    `"${subject}" needs an approval, and approvals are not available in pods yet; use a tool that needs none, or remove it from the policy's rules.requireApproval`,
  );
}
