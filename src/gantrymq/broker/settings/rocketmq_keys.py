"""Settings that only RocketMQ or only this broker has, and defaults that differ."""

from gantrymq.base.telemetry_settings import OURS_OF_LOGS
from gantrymq.remoting.limits import OURS_OF_LIMITS

IGNORED_KEYS = frozenset(
    """
    accessMessageInMemoryHotRatio accountStatsEnable
    accountStatsPrintZeroValues ackMessageThreadPoolNums ackThreadPoolQueueCapacity
    aclCacheExpiredSecond aclCacheMaxNum aclCacheRefreshSecond
    adminBrokerThreadPoolNums adminBrokerThreadPoolQueueCapacity allAckInSyncStateSet
    allowRecallWhenBrokerNotWriteable appendAckAsync appendCkAsync asyncLearner asyncSendEnable
    authConfigPath authenticationMetadataProvider authenticationProvider authenticationStrategy
    authorizationMetadataProvider authorizationProvider authorizationStrategy
    autoDeleteUnusedStats autoMessageVersionOnTopicLen batchDispatchRequestThreadPoolNums
    bitMapLengthConsumeQueueExt bottomMostCompressionTypeForConsumeQueueStore
    broadcastOffsetExpireMaxSecond broadcastOffsetExpireSecond
    brokerElectionPriority brokerHeartbeatInterval brokerNotActiveTimeoutMillis
    cgColdReadThreshold channelExpiredTimeout channelNotActiveInterval checkSyncStateSetPeriod
    cleanFileForciblyEnable cleanOfflineBrokerInterval cleanRocksDBDirtyCQIntervalMin
    cleanSwapedMapInterval clearRetryTopicWhenDeleteTopic clientAsyncSemaphoreValue
    clientCallbackExecutorThreads clientChannelMaxIdleTimeSeconds clientCloseSocketIfTimeout
    clientManageThreadPoolNums clientManagerThreadPoolQueueCapacity clientOnewaySemaphoreValue
    clientPooledByteBufAllocatorEnable clientSocketRcvBufSize clientSocketSndBufSize
    clientWorkerThreads coldCtrStrategyEnable coldDataFlowControlEnable coldDataScanEnable
    commercialBaseCount commercialBigCount commercialEnable commercialSizePerMsg
    commercialTimerCount commercialTransCount commitCommitLogLeastPages
    commitCommitLogThoroughInterval commitIntervalCommitLog commitLogForceSwapMapInterval
    commitLogSwapMapInterval commitLogSwapMapReserveFileNum compactionCqMappedFileSize
    compactionMappedFileSize compactionScheduleInternal compactionThreadNum
    compatibleWithOldNameSrv configBlackList configManagerVersion connectTimeoutMillis
    consumerFallbehindThreshold consumerManageThreadPoolNums
    consumerManagerThreadPoolQueueCapacity consumerOffsetUpdateVersionStep controllerAddr
    controllerHeartBeatTimeoutMills correctLogicMinOffsetForceInterval
    correctLogicMinOffsetSleepInterval dataReadAheadEnable
    debugLockEnable delayOffsetUpdateVersionStep deleteCommitLogFilesInterval
    deleteConsumeQueueFilesInterval destroyMapedFileIntervalForcibly
    disableCallbackExecutor disableConsumeIfConsumerReadSlowly disableNettyWorkerGroup
    disappearTimeAfterStart diskFallRecorded
    dispatchCqCacheNum dispatchCqThreads dispatchFromSenderThread
    duplicationEnable enableAsyncReput enableAutoInSyncReplicas enableBatchPush
    enableBroadcastOffsetStore enableBuildConsumeQueueConcurrently enableCleanExpiredOffset
    enableCompaction enableControllerMode enableCreateSysGroup
    enableDetailStat enableFastChannelEventProcess enableLmq enableLmqStats
    enableMultiDispatch enableNetWorkFlowControl enableNotifyAfterPopOrderLockRelease
    enableNotifyBeforePopCalculateLag enablePopBatchAck enablePopBufferMerge enablePopLog
    enablePopMessageThreshold enableReconnectForGoAway enableRegisterProducer enableRemoteEscape
    enableRocksDBLog enableScheduleAsyncDeliver enableScheduleMessageStats
    enableShutdownGracefully enableSingleTopicRegister enableSkipLongAwaitingAck
    enableSlaveActingMaster enableSplitRegistration enabledAppendPropCRC
    endTransactionPoolQueueCapacity endTransactionThreadPoolNums estimateAccumulation
    fastFailIfNoBufferInStorePool fetchControllerAddrByDnsLookup fetchNameSrvAddrByDnsLookup
    fetchNamesrvAddrByAddressServer fetchNamesrvAddrInterval filterServerNums flushCommitLogTimed
    flushConsumeQueueLeastPages flushConsumeQueueThoroughInterval
    flushConsumerOffsetHistoryInterval flushIntervalConsumeQueue flushLeastPagesWhenWarmMapedFile
    forceRegister forceVerifyPropCRC forwardTimeout globalColdReadThreshold haFlowControlEnable
    haHousekeepingInterval haMaxTimeSlaveNotCatchup
    haSendHeartbeatInterval haTransferBatchSize heartbeatThreadPoolNums
    heartbeatThreadPoolQueueCapacity highSpeedMode inBrokerContainer inSyncReplicas
    initPopOffsetByCheckMsgInMem isBrokerContainer isEnableBatchPush isInBrokerContainer
    isScanAvailableNameSrv isolateLogEnable litePullMessageEnable
    litePullMessageThreadPoolNums litePullThreadPoolQueueCapacity
    loadBalancePollNameServerInterval loadBalanceProcessorThreadPoolNums
    loadBalanceThreadPoolQueueCapacity lockInStrictMode logicQueueForceSwapMapInterval
    logicQueueSwapMapInterval logicQueueSwapMapReserveFileNum
    logicalDiskSpaceCleanForciblyThreshold mappedFileSizeTimerLog
    mappedFileSwapEnable mapperFileSizeBatchConsumeQueue maxAsyncPutMessageRequests
    maxBatchDeleteFilesNum maxChecksumRange maxConsumeQueueScan maxDelayTime maxFilterMessageSize
    maxHaTransferByteInSecond maxLmqConsumeQueueNum maxOffsetMapSize
    maxReconnectIntervalTimeSeconds maxRecoveryCommitlogFiles maxSlaveResendLength
    maxStatsIdleTimeInMinutes maxTopicLength maxTransferBytesOnMessageInDisk
    maxTransferCountOnMessageInDisk memTableFlushIntervalMs messageIndexSafe messageStorePlugIn
    migrateAuthFromV1Enabled minInSyncReplicas
    offsetCheckInSlave
    popCkMaxBufferSize popCkOffsetMaxQueueSize popCkStayBufferTime popCkStayBufferTimeOut
    popConsumerFSServiceInit popConsumerKVServiceEnable popConsumerKVServiceInit
    popConsumerKVServiceLog popInflightMessageThreshold popLongPollingForceNotifyInterval
    popPollingMapSize popResponseReturnActualRetryTopic popReviveMaxAttemptTimes
    popReviveMaxReturnSizePerRead preferredLeaderId printChannelGroups printChannelGroupsMinNum
    processReplyMessageThreadPoolNums pullBatchMaxMessageCount pullMessageThreadPoolNums
    pullThreadPoolQueueCapacity putConsumeQueueDataByFileChannel putMessageFutureThreadPoolNums
    putMessageTimeout putMsgIndexHightWater putThreadPoolQueueCapacity queryMessageThreadPoolNums
    queryThreadPoolQueueCapacity readOnlyCommitLogStorePaths readUnCommitted
    realTimeNotifyConsumerChange realTimePersistRocksDBConfig recheckReputOffsetFromCq
    recoverConcurrently recoverThreadPoolNums redeleteHangedFileInterval rejectPullConsumerEnable
    replicasPerDiskPartition replyThreadPoolQueueCapacity reviveAckWaitMs reviveMaxSlow
    reviveScanTime rocksdbCQDoubleWriteEnable rocksdbCompressionType rocksdbFlushWalFrequency
    rocksdbWalFileRollingThreshold sampleCountThreshold sampleSteps scanAvailableNameSrv
    scheduleAsyncDeliverMaxPendingLimit scheduleAsyncDeliverMaxResendNum2Blocked
    searchBcqByCacheEnable sendHeartbeatTimeoutMillis sendMessageThreadPoolNums
    serverAsyncSemaphoreValue serverCallbackExecutorThreads serverChannelMaxIdleTimeSeconds
    serverLoadBalancerEnable serverNettyWorkerGroupEnable serverOnewaySemaphoreValue
    serverPooledByteBufAllocatorEnable serverSelectorThreads serverSocketBacklog
    serverSocketSndBufSize serverWorkerThreads shutdownWaitTimeSeconds
    skipPreOnline skipWhenCKRePutReachMaxTimes socksProxyConfig
    spinLockCollisionRetreatOptimalDegree splitRegistrationSize startAcceptSendRequestTimeStamp
    statRocksDBCQIntervalSec statefulAuthenticationCacheExpiredSecond
    statefulAuthenticationCacheMaxNum statefulAuthorizationCacheExpiredSecond
    statefulAuthorizationCacheMaxNum storePathBrokerIdentity storePathDLedgerCommitLog
    storePathEpochFile
    storeType subscriptionExpiredTimeout syncBrokerMemberGroupPeriod syncBrokerMetadataPeriod
    syncControllerMetadataPeriod syncFromLastFile syncMasterFlushOffsetWhenStartup
    timerCheckMetricsWhen timerColdDataCheckIntervalMs timerCongestNumEachSlot
    timerEnableCheckMetrics timerEnableDisruptor timerEnableRetryUntilSuccess
    timerFlushIntervalMs timerGetMessageThreadNum
    timerInterceptDelayLevel timerMetricSmallThreshold timerProgressLogIntervalMs
    timerPutMessageThreadNum timerRollWindowSlot timerSkipUnknownError timerStopDequeue
    timerStopEnqueue timerWarmEnable
    topicQueueLockNum totalReplicas traceOn transactionMetricFlushInterval transferMsgByHeap
    transactionOpBatchInterval transactionOpMsgMaxSize transientStorePoolEnable
    transientStorePoolSize travelCqFileNumWhenGetMessage
    updateNameServerAddrPeriod useABSLock useEpollNativeSelector usePIDColdCtrStrategy
    useReentrantLockWhenPutMessage useStaticSubscription useTLS userCacheExpiredSecond
    userCacheMaxNum userCacheRefreshSecond validateSystemTopicWhenUpdateTopic
    waitTimeMillsInAckQueue waitTimeMillsInAdminBrokerQueue waitTimeMillsInHeartbeatQueue
    waitTimeMillsInLitePullQueue waitTimeMillsInPullQueue waitTimeMillsInTransactionQueue
    wakeCommitWhenPutMessage wakeFlushWhenPutMessage warmMapedFileEnable writeBufferHighWaterMark
    writeBufferLowWaterMark
    """.split()  # noqa: SIM905
)
"""Keys of RocketMQ's broker (4.9 and 5.x) without effect here: accepted, with one warning."""

STATED = {
    "coldDataFlowControlEnable": "false",
    "duplicationEnable": "false",
    "enableCompaction": "false",
    "enableControllerMode": "false",
    "enableLmq": "false",
    "enableMultiDispatch": "false",
    "enableSlaveActingMaster": "false",
    "filterServerNums": "0",
    "forceRegister": "true",
    "isBrokerContainer": "false",
    "isInBrokerContainer": "false",
    "litePullMessageEnable": "true",
    "rejectPullConsumerEnable": "false",
    "storeType": "default",
    "traceOn": "true",
    "transientStorePoolEnable": "false",
    "useTLS": "false",
}
"""Keys without a setting here about which GET_BROKER_CONFIG tells how it is, because tools read
them. Others of RocketMQ are left out of its answer: thread pools, RocksDB, Netty."""

OURS = {
    **OURS_OF_LIMITS,
    **OURS_OF_LOGS,
    "metricsLagPerQueue": "none",
    "aclFile": "the Java property `rocketmq.acl.plain.file`",
    "raftAppendBytesMax": "none; its groups push entries one by one or in small batches",
    "haCopyWholeLog": "none; a new slave gets the last file of the log",
    "fastListenPort": "always listenPort - 2",
    "logDirectory": "the log directory stands in `rmq.broker.logback.xml`",
    "storeProfile": "none",
    "strictSubscriptions": "none; conflicting members lose messages",
    "strictSubscriptionsGraceMills": "none",
}
"""Keys that RocketMQ's broker does not have, and what it has instead."""

OTHER_DEFAULTS = {
    "brokerName": "the name of the machine",
    "enablePropertyFilter": "false",
    "haListenPort": "10912",
    "mappedFileSizeCommitLog": "1073741824",
    "mappedFileSizeConsumeQueue": "6000000",
    "mappedFileSizeConsumeQueueExt": "50331648",
    "maxHashSlotNum": "5000000",
    "maxIndexNum": "20000000",
    "maxTransferBytesOnMessageInMemory": "262144",
    "maxTransferCountOnMessageInMemory": "32",
    "recallMessageEnable": "false",
    "registerBrokerTimeoutMills": "24000",
    "serverSocketRcvBufSize": "0, and 65535 in 4.9",
    "timerMaxDelaySec": "259200",
    "timerPrecisionMs": "1000",
    "transactionCheckInterval": "30000, and 60000 in 4.9",
    "userPropertyMaxNum": "128, in its proxy only",
}
"""Defaults of RocketMQ 5's broker that differ from ours."""
