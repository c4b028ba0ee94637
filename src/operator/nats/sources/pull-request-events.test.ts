import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { EventNote } from '../../../kube/events/event-note.ts';
import type { PullRequestState } from '../../../nats/pull-requests.ts';
import { PullRequestEvents } from './pull-request-events.ts';

describe('the Events of pull requests', () => {
  it('each change of a pull request is one Event of its ApprovalRequest', async () => {
    const recorded: string[] = [];
    const events = new PullRequestEvents({
      record: ({ kind, metadata }, { type, reason, message }: EventNote) => {
        recorded.push(`${kind}/${metadata.name} ${type} ${reason} ${message}`);
      },
      [Symbol.asyncDispose]: async () => undefined,
    });
    const open: PullRequestState = {
      kind: 'Request',
      place: '',
      namespace: 'team-a',
      request: 'csv-rows-k4q7p',
      requestUid: 'u-1',
      state: 'Open',
      checkedAt: '2031-01-01T00:00:00.000Z',
      number: 3,
      url: 'https://git.example.com/org/tools/pulls/3',
    };
    const failed = { ...open, state: 'Failed' as const, message: 'connection "tools": the server answered 500' };
    const revocation = { ...failed, kind: 'Revocation' as const };
    for (const next of [[open], [{ ...open, checkedAt: 'later' }], [open, revocation], [failed], [failed]]) {
      events.report(next);
    }
    for (const state of ['Merged', 'Closed'] as const) events.report([{ ...open, state }]);
    const { number: _, ...branch } = {
      ...open,
      state: 'Closed' as const,
      url: 'https://git.example.com/tools.git#temper/x',
    };
    events.report([branch]);
    assert.deepEqual(
      recorded.map((line) => line.split(' ').slice(0, 3).join(' ')),
      [
        'ApprovalRequest/csv-rows-k4q7p Normal PullRequestOpened',
        'ApprovalRequest/csv-rows-k4q7p Warning PullRequestFailed',
        'ApprovalRequest/csv-rows-k4q7p Normal PullRequestMerged',
        'ApprovalRequest/csv-rows-k4q7p Warning PullRequestClosed',
        'ApprovalRequest/csv-rows-k4q7p Warning PullRequestClosed',
      ],
    );
    assert.match(recorded[0] ?? '', /https:\/\/git\.example\.com\/org\/tools\/pulls\/3 waits for a merge/);
    assert.match(recorded.at(-1) ?? '', /tools\.git#temper\/x was deleted without a merge; deny the request, or push/);
    assert.match(recorded[1] ?? '', /the server answered 500; the gateway tries again/);
  });
});
