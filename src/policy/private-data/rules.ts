import { PRIVATE_NETWORK_RULE } from './sources.ts';
import type { PreparedPolicy } from '../prepare.ts';
import type { NetworkRuleInput, ToolRuleInput } from '../rules/rule-inputs.ts';
import { escalate, notApplicable, passed } from '../rules/rule.ts';
import type { Rule, RuleNote } from '../rules/rule.ts';

const WHY = 'the session contains private data and untrusted content, so an approver has to permit it';
const MAX_SHOWN_HOSTS = 10;

/** The calls that send: an approver sees the hosts and the arguments of each. */
export function privateToolRule({ snapshot }: PreparedPolicy): Rule<ToolRuleInput> {
  return {
    id: PRIVATE_NETWORK_RULE,
    check: (request) =>
      isGuarded(snapshot) && request.arguments !== undefined && sendsToHosts(request)
        ? escalate(
            `Tool "${request.name}" may send to ${hostsOf(request)}, and ${WHY}: ${bytesOf(request)} of arguments.`,
          )
        : undefined,
    explain: (request) => (sendsToHosts(request) ? noteOf(snapshot) : notApplicable('the tool sends to no host')),
  };
}

/** The connections that such a call opens. */
export function privateConnectionRule({ snapshot }: PreparedPolicy): Rule<NetworkRuleInput> {
  return {
    id: PRIVATE_NETWORK_RULE,
    check: ({ target }) =>
      isGuarded(snapshot)
        ? escalate(
            `A connection to ${target} needs the approval of the call that opens it: ${WHY}. Call the tool again.`,
          )
        : undefined,
    explain: () => noteOf(snapshot),
  };
}

type Snapshot = PreparedPolicy['snapshot'];

/** Where nothing counts as private data, no session has any. */
function isGuarded({ tainted, hasPrivateData, policy }: Snapshot): boolean {
  return tainted && hasPrivateData === true && policy.spec.privateData?.sources?.length !== 0;
}

/** Also a tool whose action says less than it does: what names hosts can send to them. */
function sendsToHosts({ category, does, hosts = [] }: ToolRuleInput): boolean {
  return does.all.includes('comms:external') || category === 'web' || hosts.length > 0;
}

function hostsOf({ hosts = [] }: ToolRuleInput): string {
  if (hosts.length === 0) return 'a host';
  const more = hosts.length > MAX_SHOWN_HOSTS ? ` and ${hosts.length - MAX_SHOWN_HOSTS} more` : '';
  return `${hosts.slice(0, MAX_SHOWN_HOSTS).join(', ')}${more}`;
}

function bytesOf({ arguments: input }: ToolRuleInput): string {
  const bytes = Buffer.byteLength(JSON.stringify(input) ?? '');
  return `${bytes} byte${bytes === 1 ? '' : 's'}`;
}

function noteOf({ tainted, hasPrivateData }: Snapshot): RuleNote {
  if (!tainted) return notApplicable('the session is not tainted');
  return hasPrivateData === true
    ? passed('an approver sees each call')
    : notApplicable('the session has no private data');
}
