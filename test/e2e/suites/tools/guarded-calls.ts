import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pollValue } from '../../../support/poll.ts';
import { endsOf, sendAll } from '../../support/user-session.ts';
import type { ForgedTools } from '../../support/forged-tools-setup.ts';
import { waitingRequests } from '../../support/waiting-requests.ts';

/** Calls that the policy escalates: parked for a user, or refused where no user can be asked. */
export function guardedCalls(current: () => ForgedTools): void {
  const waiting = () => waitingRequests(current().cluster, { namespace: current().agents.namespace, agent: 'guarded' });

  const decide = async (verb: 'approve' | 'deny', request: string): Promise<string> => {
    const { approver, agents } = current();
    const { code, stdout, stderr } = await approver.temper(verb, request, '--reason', 'looked', '-n', agents.namespace);
    assert.equal(code, 0, stderr);
    return stdout;
  };

  describe('guarded calls', () => {
    it('a parked call is made after kubectl temper approve, and not after deny, and the agent goes on meanwhile', async () => {
      const { sessionOf } = current();
      const [approved, denied] = [sessionOf('guarded', 'approved'), sessionOf('guarded', 'denied')];
      await sendAll(approved, ['list the files']);
      const [first = ''] = await pollValue('the first request', waiting, ({ length }) => length === 1);
      await sendAll(denied, ['list the files']);
      const both = await pollValue('the second request', waiting, ({ length }) => length === 2);
      const second = both.find((name) => name !== first) ?? '';
      assert.match(await decide('approve', first), /the agent may make this call once/);
      assert.match(await decide('deny', second), /the agent may not make this call/);
      const [[made = ''], [refused = '']] = await Promise.all([endsOf(approved, 1), endsOf(denied, 1)]);
      assert.match(made, /"entries"|"files"/, made);
      assert.match(refused, /TEMPER_APPROVAL_DENIED/, refused);
      await pollValue('the decisions of both requests', waiting, ({ length }) => length === 0);
    });

    it('a test of a forge that calls a guarded tool fails with the reason, and requests no approval', async () => {
      const session = current().sessionOf('guarded', 'forge');
      await sendAll(session, ['forge a guarded chain']);
      const [refused = ''] = await endsOf(session, 1);
      assert.match(refused, /refused at gate tests: .*\\"file_list\\" needs an approval.*call the tool directly/);
      assert.deepEqual(await waiting(), []);
    });
  });
}
