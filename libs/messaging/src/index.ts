export { MessagingModule } from './nest/messaging.module';
export { Answer, Consume } from './nest/consume.decorator';
export type { ConsumeContext } from './nest/consume.decorator';
export { MessagePublisher } from './nest/message-publisher';
export { RequestClient } from './nest/request-client';
export { inboxMigrations } from './nest/inbox-migrations';
export type { RequestOutcome } from './requesting/bus-requester';
export { createEnvelope } from './envelope/create-envelope';
export type { SerializedEnvelope } from './envelope/create-envelope';
export { messageTraceHeaders } from './envelope/trace-headers';
export { exchangeName } from './envelope/message-type';
export { errorQueue, retryQueue, skippedQueue } from './bus/queue-topology';
export { connectBus } from './connect-bus';
export type { ConnectBusOptions, PlainBus } from './connect-bus';
export { ParkingLot } from './parking/parking-lot';
export type { ParkingQueue } from './parking/parking-lot';
export type { ParkedMessage } from './parking/parked-message';
export {
  BusUnavailableError,
  MessageReturnedError,
  PublishTimeoutError,
  RequestFaultedError,
  RequestTimeoutError,
} from './errors';
