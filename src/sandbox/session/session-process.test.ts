import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { echoCall, SESSION_LIMITS, sessionsContract, valueOf } from '../../../test/contracts/code-sessions.ts';
import { callOptions } from '../../../test/support/call-options.ts';
import { poll } from '../../../test/support/poll.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import { createSupervisor, type Supervisor } from '../supervisor.ts';

let sandbox: Supervisor;
before(async () => {
  sandbox = await createSupervisor({ clock: systemClock, warm: 0 });
});
after(() => sandbox[Symbol.asyncDispose]());

sessionsContract('the supervisor', () => sandbox);

describe('the process of a session', () => {
  const open = () => sandbox.openSession({ limits: SESSION_LIMITS, memory: {} }, callOptions());

  it('a process that is killed ends its session, and the next one starts', async () => {
    const session = await open();
    for (const pid of sandbox.processes) process.kill(pid, 'SIGKILL');
    await poll('the end of the session', () => !session.isOpen);
    const next = await open();
    assert.equal(valueOf(await next.run({ code: 'return 1;' }, echoCall, callOptions())), 1);
    await next.close();
  });

  it('the supervisor starts a limited number of processes', async () => {
    const limited = await createSupervisor({ clock: systemClock, warm: 0, maxSessions: 2 });
    try {
      const started = await Promise.allSettled(
        Array.from({ length: 3 }, () => limited.openSession({ limits: SESSION_LIMITS, memory: {} }, callOptions())),
      );
      const refused = started.filter((start) => start.status === 'rejected');
      assert.equal(refused.length, 1);
      assert.ok(isTemperError(refused[0]?.reason, 'TEMPER_SANDBOX_UNAVAILABLE'));
    } finally {
      await limited[Symbol.asyncDispose]();
    }
  });
});
