import { setTimeout as sleep } from 'node:timers/promises';
import { LABELS } from '../../../src/api/cluster.ts';
import type { VerificationWork } from '../../../src/gateway-api/verification/verification-schemas.ts';
import type { KubeClient } from '../../../src/kube/client/kube-client.ts';
import type { Json, JsonObject } from '../../../src/lib/json.ts';
import { type Pod, TYPES } from '../../../src/operator/kube/types.ts';
import { createVerifications } from '../../../src/nats/promotion/verifications.ts';
import type { JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { createSourceCipher, type SourceKeyring } from '../../../src/nats/sources/source-cipher.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { runVerification } from '../../../src/pod/verifier/verification.ts';
import type { Sandbox } from '../../../src/sandbox/port.ts';
import type { CaseOutputs } from '../../../src/tempering/verification/verification-case.ts';
import { callOptions } from '../call-options.ts';
import { RELEASE_NAMESPACE } from '../api-server/api-server-fixture.ts';

const INTERVAL_MS = 20;

/** What a simulated verifier sends for its work; undefined: nothing yet. */
export type Behaviour = (work: VerificationWork, pod: Pod) => Json | undefined | Promise<Json | undefined>;

/**
 * Stands in for the containers of verifier pods: sends what `behaviour` makes of each round of an assigned pod, once, through what the
 * gateway's routes use. Returns the UIDs of the pods that had work.
 */
export function simulateVerifiers(
  client: KubeClient,
  gateway: JetStreamConnection,
  sourceKeys: Readonly<SourceKeyring>,
  behaviour: () => Behaviour,
  signal: AbortSignal,
): { served: string[]; ended: Promise<void> } {
  const verifications = createVerifications(gateway, createSourceCipher(sourceKeys, systemClock));
  const served: string[] = [];
  const rounds = new Map<string, number>();
  const serve = async (): Promise<void> => {
    const selector = { namespace: RELEASE_NAMESPACE, labelSelector: LABELS.verification };
    for (const pod of await client.list<Pod>(TYPES.pods, selector, signal)) {
      const { uid = '' } = pod.metadata;
      const round = rounds.get(uid) ?? 0;
      const work = await verifications.work(uid, round);
      const outputs =
        work === undefined ? undefined : await behaviour()(JSON.parse(work.toString()) as VerificationWork, pod);
      if (outputs === undefined) continue;
      // Again while NATS is away, as a pod repeats its request.
      await verifications.putOutputs(uid, round, outputs);
      rounds.set(uid, round + 1);
      if (round === 0) served.push(uid);
    }
  };
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      // The servers may be down for a while.
      await serve().catch(() => undefined);
      await sleep(INTERVAL_MS, undefined, { signal }).catch(() => undefined);
    }
  };
  return { served, ended: run() };
}

/** Runs every case in the sandbox, with the code of a verifier pod. */
export function sandboxedOutputs(sandbox: Sandbox): Behaviour {
  return async (work) => {
    const op = callOptions(60_000);
    return (await runVerification(work, { sandbox, clock: systemClock }, op)) as unknown as Json;
  };
}

/** Runs every case as the function does, and every call of a probe. */
export function honestOutputs(run: (input: never) => Json): Behaviour {
  return ({ attempt, round, cases }) => {
    const outputs = cases.map(({ input }): CaseOutputs => {
      const output = { ok: true, output: probed(input, run) ?? run(input as never) } as const;
      return [output, output];
    });
    return { attempt, round, outputs } as unknown as Json;
  };
}

function probed({ calls, inputs }: JsonObject, run: (input: never) => Json): Json | undefined {
  if (!Array.isArray(calls) || !Array.isArray(inputs)) return undefined;
  const results = calls.map((call) => {
    const text = JSON.stringify(run(inputs[Number((call as number[])[1])] as never));
    return { text, failed: false, mutated: false, work: 1 };
  });
  return { results };
}
