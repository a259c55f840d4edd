import { Module } from '@nestjs/common';
import { DatabaseRevocationSource } from './database-revocation-source.service';
import { RevocationsController } from './revocations.controller';

@Module({
  controllers: [RevocationsController],
  providers: [DatabaseRevocationSource],
  exports: [DatabaseRevocationSource],
})
export class RevocationsModule {}
