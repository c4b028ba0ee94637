import { digestOf } from '../../src/lib/canonical.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { ulids } from '../../src/lib/ids.ts';
import { textAt } from '../../src/lib/json.ts';
import type { RecordStore } from '../../src/lib/record-store.ts';
import type { OpenedAgent } from '../../src/standalone/team/opened-agent.ts';
import type { Plan, Suite } from './environment.ts';

/** What an approver was asked. */
export interface Asked {
  /** Calls of the user task, which the approver permitted. */
  planned: number;
  /** All other calls, which the approver denied. */
  others: number;
}

/** A user who knows the own task: permits each call of it once, and denies every other call. */
export class Approver {
  readonly asked: Asked = { planned: 0, others: 0 };
  readonly #records: RecordStore;
  readonly #approvals: OpenedAgent['approvals'];
  readonly #open: string[];
  readonly #seen = new Set<string>();

  constructor(records: RecordStore, approvals: OpenedAgent['approvals'], suite: Suite, { calls }: Plan) {
    this.#records = records;
    this.#approvals = approvals;
    this.#open = calls.map(({ name, arguments: input }) => `${suite}_${name} ${digestOf(input)}`);
  }

  async decide(request: string): Promise<void> {
    if (this.#seen.has(request)) return;
    this.#seen.add(request);
    const stored = await this.#records.get('approvalrequests', request);
    const call = ['spec', 'subject', 'call'];
    const asked = `${textAt(stored, [...call, 'tool'])} ${textAt(stored, [...call, 'argumentsDigest'])}`;
    const index = this.#open.indexOf(asked);
    if (index === -1) this.asked.others += 1;
    else {
      this.asked.planned += 1;
      this.#open.splice(index, 1);
    }
    await this.#approvals.decide({
      id: ulids.next('decision'),
      verb: index === -1 ? 'Deny' : 'Approve',
      target: request,
      reason: 'the task of the user',
      by: 'user',
      time: systemClock.now().toISOString(),
    });
  }
}
