import type { Bus } from '@platform/contracts';
import type { RetryPolicy } from '../consuming/endpoint';
import type { ConsumeContext, HandlerMetadata } from './consume.decorator';

/** A marked method, ready to be called. */
export interface DiscoveredHandler extends HandlerMetadata {
  readonly invoke: (message: unknown, context: ConsumeContext) => Promise<unknown>;
}

/** A queue with all its handlers. */
export interface EndpointPlan {
  readonly bus: Bus;
  readonly queue: string;
  readonly handlers: readonly DiscoveredHandler[];
  readonly policy: RetryPolicy;
  readonly prefetch: number | undefined;
}

/** Groups handlers by queue. @throws {Error} if two handlers want one message at one queue, or share a queue and disagree about
 *  its bus, retries or prefetch: the queue can only have one of each. */
export function planEndpoints(handlers: readonly DiscoveredHandler[]): EndpointPlan[] {
  const queues = [...new Set(handlers.map(({ options }) => options.queue))];
  return queues.map((queue) => {
    const sharing = handlers.filter(({ options }) => options.queue === queue);
    const plans = sharing.map(planOf);
    const [first] = plans;
    if (first === undefined) throw new Error('a group is never empty');
    const names = sharing.map(({ contract }) => contract.name);
    if (new Set(names).size !== names.length)
      throw new Error(`queue ${first.queue}: one message has two handlers`);
    if (new Set(plans.map(settingsOf)).size !== 1)
      throw new Error(`queue ${first.queue}: its handlers disagree about its options`);
    return { ...first, handlers: sharing };
  });
}

function planOf(handler: DiscoveredHandler): EndpointPlan {
  const { queue, retryDelaysMs = [], immediateRetryDelaysMs = [], prefetch } = handler.options;
  return {
    bus: handler.contract.bus,
    queue,
    handlers: [handler],
    policy: { retryDelaysMs, immediateRetryDelaysMs },
    prefetch,
  };
}

function settingsOf({ bus, policy, prefetch }: EndpointPlan): string {
  return JSON.stringify([bus, policy.retryDelaysMs, policy.immediateRetryDelaysMs, prefetch ?? null]);
}
