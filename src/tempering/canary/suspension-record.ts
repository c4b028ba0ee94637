import type { AuditRecord } from '../../audit/port.ts';
import { printable } from '../../lib/printable.ts';
import type { CanaryReport } from './canaries.ts';

/** The audit record of a canary that a reviewer approved. */
export function suspensionRecord({ standing, outcome, role }: CanaryReport): AuditRecord {
  return {
    action: 'judge.suspended',
    actor: 'system',
    evidence: 'observed',
    subject: printable(standing.model, 128),
    facts: { role, mutation: outcome.mutation, suspension: standing.suspension?.id ?? '' },
  };
}

/** The audit record of a user who lifted a suspension. */
export function resumptionRecord(model: string, suspension: string, actor: string): AuditRecord {
  return {
    action: 'judge.resumed',
    actor,
    evidence: 'observed',
    subject: printable(model, 128),
    facts: { suspension },
  };
}
