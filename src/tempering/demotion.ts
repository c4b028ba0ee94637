import type { Digest } from '../lib/canonical.ts';
import { printable } from '../lib/escape.ts';
import type { Op } from '../lib/operation.ts';
import type { EventSink } from '../tools/events.ts';
import type { SchemaCompiler } from '../tools/schemas.ts';
import { failureReason, type PromotionRules } from './promotion-rules.ts';
import { testsFailed } from './promotion-words.ts';
import type { Registry } from './registry.ts';
import { reverify } from './reverify.ts';
import { type ToolOwner, widestActive } from './scopes.ts';
import type { Verifier } from './types.ts';

export interface DemotionDeps {
  registry: Registry;
  verifier: Verifier;
  schemas: SchemaCompiler;
  events: EventSink;
  rules(owner: ToolOwner): PromotionRules;
}

/** The ways out of service. Each takes a tool out of every view at once, and its bytes never come back. */
export interface Demotion {
  /** Call it after a failed use: takes a tool of tier Agent or Shared out when it fails too often. True when it did. */
  consider(digest: Digest, owner: ToolOwner): Promise<boolean>;
  /** Runs the tests of an active tool again in a fresh runner; a failure takes it out. True when it did. */
  verifyAgain(digest: Digest, owner: ToolOwner, op: Op): Promise<boolean>;
  /** By a person, `person/<name>`: everywhere in this state. */
  demote(digest: Digest, reason: string, actor: string): Promise<void>;
}

export function createDemotion(deps: DemotionDeps): Demotion {
  const takeOut = async (digest: Digest, reason: string, actor: string, namespace?: string): Promise<void> => {
    const tool = deps.registry.get(digest)?.artifact.name ?? 'unknown';
    const done = deps.registry.demote(digest, reason, actor, namespace);
    deps.events({ type: 'demotion', tool, digest, reason: printable(reason, 500) });
    await done;
  };
  return {
    async consider(digest, owner) {
      const tool = widestActive(deps.registry, { digest, ...owner });
      if (tool === undefined || tool.tier === 'Session') return false;
      const reason = failureReason(await deps.registry.statistics(digest, owner.namespace), deps.rules(owner));
      if (reason === undefined) return false;
      await takeOut(digest, reason, 'system', owner.namespace);
      return true;
    },
    async verifyAgain(digest, owner, op) {
      const tool = widestActive(deps.registry, { digest, ...owner });
      if (tool === undefined) return false;
      const figures = await reverify(tool, [], deps, op);
      if (figures.failedTests === 0) return false;
      await takeOut(digest, testsFailed(figures), 'system', owner.namespace);
      return true;
    },
    demote: (digest, reason, actor) => takeOut(digest, reason, actor),
  };
}
