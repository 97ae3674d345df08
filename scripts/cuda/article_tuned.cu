// Faster ones for the kernel of the article: several iterations of arithmetic over one ring that asynchronous copies fill, or over
// batches in registers, loaded one batch ahead.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <algorithm>
#include <cuda_runtime.h>
#include <cuda_pipeline_primitives.h>
#define CK(x) do{cudaError_t e=(x); if(e!=cudaSuccess){printf("ERR %s line %d: %s\n",#x,__LINE__,cudaGetErrorString(e)); exit(1);} }while(0)
constexpr int BD=128;
template<int W> __device__ __forceinline__ double work(double a,double x){
#pragma unroll
 for(int k=0;k<W;k++) a+=exp(-x*x)*(x+k); return a;}
template<int W> __global__ __launch_bounds__(BD) void base(const double*__restrict__ g,double*res,int imax){ const double*arr=g+(long)blockIdx.x*imax; int t=threadIdx.x; double acc=0;
#pragma unroll 1
 for(int i=t;i<imax;i+=BD) acc=work<W>(acc,arr[i]); res[blockIdx.x*BD+t]=acc; }
// ring of R groups of U values; each step waits for one group of U
template<int W,int U,int R> __global__ __launch_bounds__(BD) void ring(const double*__restrict__ g,double*res,int imax){ extern __shared__ double v[]; const double*arr=g+(long)blockIdx.x*imax; int t=threadIdx.x; double acc=0; int n=(imax-t+BD-1)/BD; int full=n/U;
 auto fill=[&](int s,int grp){ 
#pragma unroll
  for(int u=0;u<U;u++){ int j=grp*U+u; if(j<n) __pipeline_memcpy_async(&v[(s*U+u)*BD+t],&arr[t+j*BD],8); } __pipeline_commit(); };
 for(int s=0;s<R;s++) fill(s,s); int m=0;
#pragma unroll 1
 for(int q=0;q<full;q++){ __pipeline_wait_prior(R-1); double x[U];
#pragma unroll
  for(int u=0;u<U;u++) x[u]=v[(m*U+u)*BD+t]; fill(m,q+R); if(++m==R)m=0; double e[U];
#pragma unroll
  for(int u=0;u<U;u++) e[u]=exp(-x[u]*x[u]);
#pragma unroll
  for(int u=0;u<U;u++){
#pragma unroll
   for(int k=0;k<W;k++) acc+=e[u]*(x[u]+k); } }
 __pipeline_wait_prior(0); for(int j=full*U;j<n;j++) acc=work<W>(acc,arr[t+j*BD]); res[blockIdx.x*BD+t]=acc; }
// registers: batch of U loaded one batch ahead (double buffer)
template<int W,int U> __global__ __launch_bounds__(BD) void regdb(const double*__restrict__ g,double*res,int imax){ const double*arr=g+(long)blockIdx.x*imax; int t=threadIdx.x; double acc=0; int n=(imax-t+BD-1)/BD; int full=n/U; double a[U];
#pragma unroll
 for(int u=0;u<U;u++) a[u]= u<n? arr[t+u*BD]:0;
#pragma unroll 1
 for(int q=0;q<full;q++){ double b[U];
#pragma unroll
  for(int u=0;u<U;u++){ int j=(q+1)*U+u; b[u]= j<n? arr[t+j*BD]:0; }
  double e[U];
#pragma unroll
  for(int u=0;u<U;u++) e[u]=exp(-a[u]*a[u]);
#pragma unroll
  for(int u=0;u<U;u++){
#pragma unroll
   for(int k=0;k<W;k++) acc+=e[u]*(a[u]+k); }
#pragma unroll
  for(int u=0;u<U;u++) a[u]=b[u]; }
 for(int j=full*U;j<n;j++) acc=work<W>(acc,arr[t+j*BD]); res[blockIdx.x*BD+t]=acc; }
template<class F> float tm(F f){ cudaEvent_t a,b; cudaEventCreate(&a);cudaEventCreate(&b); f(); CK(cudaDeviceSynchronize()); std::vector<float> t; for(int r=0;r<7;r++){cudaEventRecord(a); f(); cudaEventRecord(b); CK(cudaEventSynchronize(b)); float ms; cudaEventElapsedTime(&ms,a,b); t.push_back(ms);} std::sort(t.begin(),t.end()); CK(cudaGetLastError()); return t[3];}
double*g,*res; std::vector<double> ref,o; float tb; int nb=132,imax=400000;
void rep(const char*n,float t){ CK(cudaMemcpy(o.data(),res,o.size()*8,cudaMemcpyDeviceToHost)); int bad=0; for(size_t i=0;i<o.size();i++) bad+=o[i]!=ref[i]; printf("%-18s %.3f ms x%.2f %s\n",n,t,tb/t,bad?"MISMATCH":""); CK(cudaMemset(res,0,o.size()*8)); }
__global__ void mk(double*p,long n){ for(long i=blockIdx.x*(long)blockDim.x+threadIdx.x;i<n;i+=(long)gridDim.x*blockDim.x) p[i]=(i*2654435761u>>8&0xffff)/65536.; }
template<int W> void all(){ ref.resize(nb*BD); o.resize(nb*BD); tb=tm([&]{base<W><<<nb,BD>>>(g,res,imax);}); CK(cudaMemcpy(ref.data(),res,ref.size()*8,cudaMemcpyDeviceToHost)); printf("W=%d base(restrict) %.3f ms\n",W,tb);
#define R(U,S) { cudaFuncSetAttribute(ring<W,U,S>,cudaFuncAttributeMaxDynamicSharedMemorySize,U*S*BD*8); char s[32]; sprintf(s,"ring U%d R%d",U,S); rep(s,tm([&]{ring<W,U,S><<<nb,BD,U*S*BD*8>>>(g,res,imax);})); }
 R(1,8) R(1,16) R(2,4) R(2,8) R(4,2) R(4,4) R(4,8) R(8,2) R(8,4)
 rep("regdb U2",tm([&]{regdb<W,2><<<nb,BD>>>(g,res,imax);})); rep("regdb U4",tm([&]{regdb<W,4><<<nb,BD>>>(g,res,imax);})); rep("regdb U8",tm([&]{regdb<W,8><<<nb,BD>>>(g,res,imax);})); rep("regdb U16",tm([&]{regdb<W,16><<<nb,BD>>>(g,res,imax);})); }
int main(){ long n=132l*400000; CK(cudaMalloc(&g,n*8)); CK(cudaMalloc(&res,1<<24)); mk<<<1024,256>>>(g,n); CK(cudaDeviceSynchronize()); all<1>(); all<4>(); 
 // same total work spread over more groups: what geometry alone gives
 printf("same work, more groups:\n"); for(int k:{1,2,4,8,16}){ nb=132*k; imax=400000/k; float t=tm([&]{base<1><<<nb,BD>>>(g,res,imax);}); float r=tm([&]{ring<1,2,4><<<nb,BD,2*4*BD*8>>>(g,res,imax);}); float u=tm([&]{regdb<1,4><<<nb,BD>>>(g,res,imax);}); printf("groups %d base %.3f ring(2,4) %.3f regdb4 %.3f ms\n",nb,t,r,u);} }
