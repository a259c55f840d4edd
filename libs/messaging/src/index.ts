export { MessagingModule } from './nest/messaging.module';
export { Consume, Respond } from './nest/consume.decorator';
export type { ConsumeContext } from './nest/consume.decorator';
export { MessagePublisher, RequestClient } from './nest/buses';
export { PurgeInboxJob } from './nest/purge-inbox.job';
export { InboxMessage, inboxMigrations } from './nest/inbox.entity';
export type { RequestOutcome } from './broker/bus-requester';
export { isMessageRefusal, isRefusal } from './broker/confirm-publisher';
export { createEnvelope, exchangeName } from './envelope/create-envelope';
export type { SerializedEnvelope } from './envelope/create-envelope';
export { messageTraceHeaders } from './envelope/message-trace';
export { errorQueue, retryQueue, skippedQueue } from './broker/queue-topology';
export { connectBus, type PlainBus } from './connect-bus';
export type { ConnectBusOptions } from './connect-bus';
export { ErrorQueues } from './broker/error-queues';
export type { ErrorQueue, FailedMessage, QueueState } from './broker/error-queues';
export {
  BusUnavailableError,
  MessageRefusedError,
  MessageReturnedError,
  PublishTimeoutError,
  RequestFaultedError,
  RequestTimeoutError,
} from './broker/broker-errors';
export { UnacceptableMessageError } from './consuming/handler-errors';
