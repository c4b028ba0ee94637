import type { Digest } from '../../lib/canonical.ts';
import { printable } from '../../lib/printable.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { EventSink } from '../../tools/events.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { failureReason, type PromotionRules } from './promotion-rules.ts';
import { testFailureMessage } from './promotion-messages.ts';
import type { Registry } from '../registry/registry.ts';
import { reverify } from '../verification/reverify.ts';
import { type ToolOwner, widestActive } from '../registry/visibility.ts';
import type { Verifier } from '../types.ts';

export interface DemotionDeps {
  registry: Registry;
  verifier: Verifier;
  schemas: SchemaCompiler;
  events: EventSink;
  rules(owner: ToolOwner): PromotionRules;
}

/** Takes tools out of service. A demoted tool leaves every view immediately, and its digest is never accepted again. */
export interface Demotion {
  /** Call after a failed use: demotes a tool of tier Agent or Shared whose recent error rate exceeds the limit. Returns true on demotion. */
  demoteIfFailing(digest: Digest, owner: ToolOwner): Promise<boolean>;
  /** Re-runs the tests of an active tool in a fresh runner and demotes the tool when one fails. Returns true on demotion. */
  demoteIfTestsFail(digest: Digest, owner: ToolOwner, op: CallOptions): Promise<boolean>;
  /** Demotion by a user (`actor` is `user/<name>`), in all namespaces of this state. */
  demote(digest: Digest, reason: string, actor: string): Promise<void>;
}

export function createDemotion(deps: DemotionDeps): Demotion {
  const demoteTool = async (digest: Digest, reason: string, actor: string, namespace?: string): Promise<void> => {
    const tool = deps.registry.get(digest)?.artifact.name ?? 'unknown';
    const done = deps.registry.demote(digest, reason, actor, namespace);
    deps.events({ type: 'demotion', tool, digest, reason: printable(reason, 500) });
    await done;
  };
  return {
    async demoteIfFailing(digest, owner) {
      const tool = widestActive(deps.registry, { digest, ...owner });
      if (tool === undefined || tool.tier === 'Session') return false;
      const reason = failureReason(await deps.registry.statistics(digest, owner.namespace), deps.rules(owner));
      if (reason === undefined) return false;
      await demoteTool(digest, reason, 'system', owner.namespace);
      return true;
    },
    async demoteIfTestsFail(digest, owner, op) {
      const tool = widestActive(deps.registry, { digest, ...owner });
      if (tool === undefined) return false;
      const figures = await reverify(tool, [], deps, op);
      if (figures.failedTests === 0) return false;
      await demoteTool(digest, testFailureMessage(figures), 'system', owner.namespace);
      return true;
    },
    demote: (digest, reason, actor) => demoteTool(digest, reason, actor),
  };
}
