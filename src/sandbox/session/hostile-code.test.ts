import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { echoCall, SESSION_LIMITS, valueOf } from '../../../test/contracts/code-sessions.ts';
import { HOSTILE_CODE, type HostileCode } from '../../../test/fixtures/adversarial/code.ts';
import type { Payload } from '../../../test/fixtures/adversarial/payload.ts';
import { PAYLOADS } from '../../../test/fixtures/adversarial/payloads.ts';
import { callOptions } from '../../../test/support/call-options.ts';
import { systemClock } from '../../lib/clock.ts';
import { isUnprintable } from '../../lib/printable.ts';
import type { RunOutcome, SessionLimits, SessionRunner } from '../session-port.ts';
import { createSupervisor, type Supervisor } from '../supervisor.ts';

const LIMITS = { ...SESSION_LIMITS, memoryBytes: 33_554_432 };
/** For code that may run into the limit of its time. All other code ends on a busy machine too. */
const SHORT = { ...LIMITS, guestMilliseconds: 1_000 };
/** Payloads of each class of hostile tools that run as code of a session, too. */
const PER_CLASS = 3;

let sandbox: Supervisor;
before(async () => {
  sandbox = await createSupervisor({ clock: systemClock, warm: 0 });
});
after(() => sandbox[Symbol.asyncDispose]());

/** Sessions for hostile code; one that still runs code serves the next attack. */
class Sessions {
  readonly #limits: SessionLimits;
  #current: SessionRunner | undefined;

  constructor(limits: SessionLimits) {
    this.#limits = limits;
  }

  async run(code: string): Promise<RunOutcome> {
    if (this.#current?.isOpen !== true) {
      this.#current = await sandbox.openSession({ limits: this.#limits, memory: {} }, callOptions());
    }
    return this.#current.run({ code }, echoCall, callOptions());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#current?.close();
    this.#current = undefined;
  }
}

function assertContained(outcome: RunOutcome): void {
  assert.ok(!JSON.stringify(outcome).includes('ESCAPED'), JSON.stringify(outcome).slice(0, 400));
  if (outcome.ok) return;
  assert.ok(outcome.message.length <= 4_096);
  assert.ok(!Array.from(outcome.message).some((character) => isUnprintable(character.codePointAt(0) ?? 0)));
  assert.doesNotMatch(outcome.message, /node_modules|file:\/\/\/(?!etc)|\/src\/sandbox/);
}

/** A hostile tool as code: it defines the same function and calls it. */
function asCode({ source, input = {} }: Payload): string {
  return `${source}\n;return (typeof execute === 'function' ? execute : run)(${JSON.stringify(input)});`;
}

function samples(): Payload[] {
  const byClass = new Map<number, number>();
  return PAYLOADS.filter((payload) => {
    const count = (byClass.get(payload.class) ?? 0) + 1;
    byClass.set(payload.class, count);
    return count <= PER_CLASS && payload.source.length < 100_000;
  });
}

describe('hostile code of a session', () => {
  it('the attacks are at least thirty, with unique names', () => {
    assert.ok(HOSTILE_CODE.length >= 30);
    assert.equal(new Set(HOSTILE_CODE.map(({ name }) => name)).size, HOSTILE_CODE.length);
  });

  for (const { name, code, expect = ['ok'], afterwards } of HOSTILE_CODE satisfies readonly HostileCode[]) {
    it(`a session withstands ${name}`, async () => {
      await using sessions = new Sessions(expect.includes('TEMPER_SANDBOX_TIMEOUT') ? SHORT : LIMITS);
      const outcome = await sessions.run(code);
      assertContained(outcome);
      const result = outcome.ok ? 'ok' : outcome.code;
      assert.ok(expect.includes(result), `${result}: ${JSON.stringify(outcome).slice(0, 400)}`);
      if (afterwards === undefined) return;
      assert.ok(outcome.memory !== undefined, 'the session ended');
      assert.equal(valueOf(await sessions.run(afterwards)), true);
    });
  }

  it('sessions withstand hostile tools of every class', async () => {
    await using sessions = new Sessions({ ...LIMITS, guestMilliseconds: 400 });
    for (const payload of samples()) assertContained(await sessions.run(asCode(payload)));
    await using later = new Sessions(LIMITS);
    assert.equal(valueOf(await later.run('return 42;')), 42);
  });
});
