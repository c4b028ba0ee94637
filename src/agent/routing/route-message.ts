import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { ModelMessage } from '../../models/port.ts';
import type { AgentEvent } from '../../tools/events.ts';
import { type Complexity, complexityOf, complexityPoints } from './points.ts';

type ModelSpec = Pick<AgentSpec['model'], 'primary' | 'routing'>;

export interface RoutedMessage {
  /** What the model sees before the current message. */
  before: readonly ModelMessage[];
  text: string;
  /** The number of tools that are offered. */
  tools: number;
  system: string;
}

interface Route {
  model: string;
  /** The choice, of an agent that routes. */
  events: AgentEvent[];
}

/**
 * The model of a message: by its complexity when the agent routes, otherwise the primary model. Chosen once per message, so that all its turns
 * share the prompt cache of one model; a message that is resumed gets the same one. Pure.
 */
export function routeMessage(spec: ModelSpec, { system, tools, before, text }: RoutedMessage): Route {
  if (spec.routing === undefined) return { model: spec.primary, events: [] };
  const points = complexityPoints({ system, tools, messages: [...before.map((message) => message.text), text] });
  const complexity = complexityOf(points);
  const model = modelFor(spec, complexity);
  return { model, events: [{ type: 'model-routed', points, complexity, model }] };
}

/** A complexity without a model of its own has the primary model. */
function modelFor({ primary, routing = {} }: ModelSpec, complexity: Complexity): string {
  const models: Record<Complexity, string | undefined> = {
    Simple: routing.simple,
    Medium: routing.medium,
    Complex: routing.complex,
  };
  return models[complexity] ?? primary;
}
