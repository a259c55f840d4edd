import type { RequestContract } from '@platform/contracts';
import type { Answer, EndpointHandler } from '../consuming/endpoint';
import type { RequestOutcome } from '../requesting/bus-requester';
import type { DiscoveredHandler } from './endpoint-plan';
import type { Inbox } from './inbox';

/** Wraps a marked method so that it runs once per message and queue, in one transaction with the message's inbox row. */
export function inboxHandler(handler: DiscoveredHandler, inbox: Inbox): EndpointHandler {
  const { contract, answers, options, invoke } = handler;
  return {
    contract,
    isRequest: answers !== null,
    process: async (message, context) => {
      const entry = { queue: options.queue, messageId: context.messageId, messageName: contract.name };
      const stored = await inbox.apply(entry, options.isolation ?? 'READ COMMITTED', async (transaction) => {
        const outcome = await invoke(message, { ...context, transaction });
        return answers === null ? null : JSON.stringify(outcome);
      });
      return answers === null || stored === null ? null : answerOf(answers, stored);
    },
  };
}

function answerOf(contract: RequestContract<unknown, unknown, unknown>, stored: string): Answer {
  const outcome = JSON.parse(stored) as RequestOutcome<unknown, unknown>;
  return 'succeeded' in outcome
    ? { contract: contract.succeeded, message: outcome.succeeded }
    : { contract: contract.failed, message: outcome.failed };
}
