import { printable } from '../../lib/printable.ts';
import type { TargetRules } from '../../net/targets.ts';
import type { CallerContext } from '../../tools/contract.ts';
import type { WebDeps } from './deps.ts';

/** The policy decides about the host of a URL and of each redirect. A port beside 443 must be in the URL that the agent wrote; the policy decides about it as about every other. */
export function hostRules(url: string, decide: WebDeps['decide'], caller: CallerContext): TargetRules {
  const port = URL.parse(url)?.port ?? '';
  return {
    ports: port === '' ? [] : [Number(port)],
    hostDenialReason(host, hostPort) {
      const { effect, reason, rule } = decide(caller, { kind: 'Network', host, port: hostPort });
      return effect === 'Allow' ? undefined : `${printable(reason, 500)} (${rule})`;
    },
  };
}
