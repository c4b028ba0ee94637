import { TemperError } from '../lib/errors.ts';
import type { Approvals } from '../tools/approvals.ts';

/** Nobody can be asked from a pod yet, so what needs a person is refused. */
export const noApprovals: Approvals = {
  request: ({ tool }) => Promise.reject(unavailable(tool)),
  decided: (id) => Promise.reject(unavailable(id)),
};

function unavailable(what: string): TemperError {
  return new TemperError(
    'TEMPER_APPROVAL_DENIED',
    `"${what}" needs the approval of a person, and approvals are not available in pods yet; use what needs none, or let the policy's rules.requireApproval leave it out`,
  );
}
