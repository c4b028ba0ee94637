import { TemperError } from '../../lib/errors.ts';
import { TaskRatingReceipt, TaskRatingRequest } from '../../gateway-api/user-schemas.ts';
import type { GatewayDeps } from '../deps.ts';
import type { GatewayServer } from '../http/routes.ts';
import { ERROR_RESPONSES, USER_SECURITY } from '../http/schemas.ts';
import { AGENT_PATH, AgentParams, requireAgent } from './messages.ts';

/** Ratings of tasks by users. All users of a namespace share one identity at the gateway, so a task has one rating, and the last one counts. */
export function userRatingRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.post(
    `${AGENT_PATH}/ratings`,
    {
      config: { access: 'user' },
      schema: {
        ...USER_SECURITY,
        summary: 'Rates an ended task of an agent',
        params: AgentParams,
        body: TaskRatingRequest,
        response: { 200: TaskRatingReceipt, ...ERROR_RESPONSES },
      },
    },
    async (request) => {
      const { uid, agent } = requireAgent(request.params, deps);
      const { message, session, rating, category } = request.body;
      if ((message === undefined) === (session === undefined)) {
        throw new TemperError('TEMPER_REQUEST_INVALID', 'body names neither or both of message and session; name one');
      }
      const target = message === undefined ? { session: session ?? '' } : { message };
      const task = await deps.tasks.find(uid, target);
      if (task === undefined) {
        const what = message === undefined ? `session "${session}"` : `message "${message}"`;
        throw new TemperError(
          'TEMPER_NOT_FOUND',
          `no ended task of agent "${agent.metadata.name}" is recorded for ${what}; only messages of users are tasks, and an agent keeps its latest ones`,
        );
      }
      await deps.tasks.rate(uid, task.message, { rating, ...(category === undefined ? {} : { category }) });
      return { message: task.message, session: task.session, outcome: task.outcome, rating };
    },
  );
}
