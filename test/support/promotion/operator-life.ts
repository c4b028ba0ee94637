import type { KubeRequest, Transport } from '../../../src/kube/client/transport.ts';
import type { OperatorAudit } from '../../../src/operator/ports.ts';
import type { PromotionStore } from '../../../src/operator/promotion/ports.ts';
import { RELEASE_NAMESPACE } from '../api-server/api-server-fixture.ts';
import { isWriteRequest } from '../operator/start-operator.ts';

/** Methods of the store with an effect. */
const EFFECTS: ReadonlySet<PropertyKey> = new Set<keyof PromotionStore>([
  'write',
  'remove',
  'assign',
  'removeVerification',
  'requestReview',
  'requestTesters',
  'removeReviews',
  'audit',
  'recordFailures',
  'writeAudit',
]);

/** Verifier pods and tools; other controllers of the operator write other objects at the same time. */
const OBJECTS_OF_PROMOTIONS = [`/namespaces/${RELEASE_NAMESPACE}/pods`, '/emergenttools'];

/** Counts the effects of the promotions of an operator on NATS and the API server. Right after one of them the test may act, or end the operator. */
export class OperatorLife {
  #left = Number.POSITIVE_INFINITY;
  #then: () => Promise<void> = () => Promise.resolve();
  #acting: Promise<void> | undefined;
  #die: () => void = () => undefined;
  #isDead = false;

  onDeath(die: () => void): void {
    this.#die = die;
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  /** Whether the effect that was waited for has happened. */
  get hasActed(): boolean {
    return this.#acting !== undefined;
  }

  /** No effect is waited for any more. Resolves when an action that has started has ended. */
  async disarm(): Promise<void> {
    this.#left = Number.POSITIVE_INFINITY;
    await this.#acting;
  }

  /** Runs `action` right after so many further effects, before the operator learns of the last one. */
  after(effects: number, action: () => Promise<void>): void {
    this.#left = effects;
    this.#then = action;
    this.#acting = undefined;
  }

  /** Ends the operator as SIGKILL does, right after so many further effects: it does not learn whether the last one succeeded. */
  dieAfter(effects: number): void {
    this.after(effects, async () => {
      this.#isDead = true;
      this.#die();
    });
  }

  async run<T>(isEffect: boolean, work: () => Promise<T>): Promise<T> {
    this.#assertAlive();
    const outcome = await Promise.allSettled([work()]);
    if (isEffect) {
      this.#left -= 1;
      if (this.#left === 0) await (this.#acting = this.#then());
    }
    this.#assertAlive();
    const [settled] = outcome;
    if (settled.status === 'rejected') throw settled.reason;
    return settled.value;
  }

  #assertAlive(): void {
    if (this.#isDead) throw new Error('the process is dead');
  }
}

export function mortalStore(store: PromotionStore, life: OperatorLife): PromotionStore {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      if (!EFFECTS.has(name)) return member.bind(target) as unknown;
      return (...args: unknown[]) => life.run(true, async () => member.apply(target, args) as unknown);
    },
  });
}

export function mortalAudit(audit: OperatorAudit, life: OperatorLife): OperatorAudit {
  return { append: (...record) => life.run(true, () => audit.append(...record)) };
}

export function mortalTransport(transport: Transport, life: OperatorLife, die: () => void): Transport {
  life.onDeath(die);
  return {
    ...transport,
    open: (request, signal) => life.run(false, () => transport.open(request, signal)),
    send: (request, signal) => life.run(isEffect(request), () => transport.send(request, signal)),
  };
}

function isEffect(request: KubeRequest): boolean {
  return isWriteRequest(request) && OBJECTS_OF_PROMOTIONS.some((path) => request.path.includes(path));
}
