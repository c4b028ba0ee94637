import type { MessageClient } from '../../../support/gateway/message-client.ts';
import { agentToolTests } from './agent-tools.ts';
import { agentTreeTests } from './agent-trees.ts';
import { askedMessageTests } from './asked-messages.ts';
import { childAgentTests } from './child-agents.ts';
import { closedSessionTests } from './closed-sessions.ts';
import { deliveryEndTests } from './delivery-ends.ts';
import { eventTests } from './events.ts';
import { idleSessionTests } from './idle-sessions.ts';
import { mcpTests } from './mcp-endpoint.ts';
import { webhookTests } from './webhooks.ts';
import { specialistTests } from './specialists.ts';
import { treeKills } from './tree-kills.ts';
import { watchedAssignmentTests } from './watched-assignment.ts';

/** The suites over two replicas and one client of messages. */
export const MESSAGE_SUITES: readonly ((open: () => MessageClient) => void)[] = [
  agentToolTests,
  agentTreeTests,
  askedMessageTests,
  childAgentTests,
  deliveryEndTests,
  eventTests,
  webhookTests,
  closedSessionTests,
  idleSessionTests,
  mcpTests,
  specialistTests,
  treeKills,
  watchedAssignmentTests,
];
