import { Global, Module } from '@nestjs/common';
import { TokenAuditRepository } from './token-audit.repository';
import { TokenAuditService } from './token-audit.service';

/** Who asked for what, and what came of it. Global: every flow takes part. */
@Global()
@Module({
  providers: [TokenAuditRepository, TokenAuditService],
  exports: [TokenAuditRepository, TokenAuditService],
})
export class AuditModule {}
