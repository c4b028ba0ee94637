import type { Controller } from '../../kube/controller/controller.ts';
import { ApprovalReconciler } from './approval-reconcile.ts';
import { RequestReconciler } from './request-reconcile.ts';
import type { Components } from '../components.ts';
import type { CreateController } from '../controllers.ts';
import { ToolReconciler } from '../tool/reconcile.ts';
import { routeToolEvents } from '../tool/routes.ts';

/** The controllers of tools and of decisions about them. One tool at a time: two tools may compete for a name. */
export function toolControllers(components: Components, create: CreateController): Controller[] {
  const tools = new ToolReconciler(components);
  const requests = new RequestReconciler(components);
  const approvals = new ApprovalReconciler(components);
  routeToolEvents({
    ...components,
    onToolDeleted: (tool) => tools.forget(tool),
    onRequestDeleted: (request) => requests.forget(request),
    onApprovalDeleted: (approval) => approvals.forget(approval),
  });
  return [
    create('tools', 1, (key, context) => tools.reconcile(key, context)),
    create('requests', 1, (key, context) => requests.reconcile(key, context)),
    create('approvals', 2, (key, context) => approvals.reconcile(key, context)),
  ];
}
